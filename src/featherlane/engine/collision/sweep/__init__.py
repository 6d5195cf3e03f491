"""Contacts within the step, with the flag `speculative`: impact times, line of sight, and the contacts' distances."""
