"""What a ray meets first, and the shapes that have a closed form."""
