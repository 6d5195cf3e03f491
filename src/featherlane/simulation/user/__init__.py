"""User callbacks: functions that users register and the engine calls."""
