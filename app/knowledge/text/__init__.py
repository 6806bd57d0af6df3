"""Text made safe to show: quoting and masking."""
