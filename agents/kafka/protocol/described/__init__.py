"""What coordinators answer about their groups, in the form of the records that they write."""
