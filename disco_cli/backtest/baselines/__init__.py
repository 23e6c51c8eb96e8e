"""Published methods, one small module each."""
