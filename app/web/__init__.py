"""JSON routes and pages: parse requests, call `knowledge`, format responses. No SQL here."""
