"""Clusters of reports of the same failure: members, hardware, regression range, growth, remedies."""
