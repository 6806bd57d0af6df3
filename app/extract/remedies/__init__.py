"""What people say they changed, and whether it helped."""
