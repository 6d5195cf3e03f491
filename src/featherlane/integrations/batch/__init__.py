"""Parts of `featherlane.integrations.mujoco_batch`."""
