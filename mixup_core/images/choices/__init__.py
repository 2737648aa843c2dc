"""What the choices of a training configuration may hold, one choice per file."""
