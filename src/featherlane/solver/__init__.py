"""From rows to accelerations: the convex problem in accelerations or in forces, and the boxed LCP."""
