"""One failure with all its reports: members, hardware, versions, growth, advice."""
