"""Many worlds as users hold them: `Batch`, its failures; and states and sensors' noise, of one world as well."""
