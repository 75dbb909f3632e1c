"""Published alternatives, one a file, all at the same guarantee and with the same bounds."""
