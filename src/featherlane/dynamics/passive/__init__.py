"""Forces that nobody commands: springs, dampers, gravity compensation, a medium."""
