"""What an operator needs: doctor, retention."""
