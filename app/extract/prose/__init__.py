"""What people write in sentences: regression range, stated cause and fix, mentions of other issues."""
