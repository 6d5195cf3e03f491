"""From accelerations to the next state, and the derivatives that implicit integrators need."""
