"""What a step consists of, and how worlds are kept, stepped and recorded."""
