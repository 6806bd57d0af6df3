"""The exception hierarchy. Every message names the object, what is wrong, and what to do.

TriageError                 base class of all errors of this program
├── ConfigError             a setting is missing or wrong                  exit 2
├── InputError              the caller's input is invalid                  HTTP 422, exit 1
│   ├── EmptyInputError     empty or only whitespace                       HTTP 422
│   ├── TooLargeError       over the size limit                            HTTP 413
│   ├── NotTextError        binary data                                    HTTP 415
│   ├── AddressError        not an issue's URL, or of another repository   HTTP 422, exit 2
│   ├── UnknownVersionError no past or future release has this version     HTTP 422, exit 2
│   ├── WeekError           not an ISO week                                HTTP 422, exit 2
│   ├── VersionOrderError   an upgrade to a version that is not newer      HTTP 422, exit 2
│   └── PullRequestError    a pull request where an issue is expected      HTTP 422
├── NotFoundError           not stored                                     HTTP 404
│   └── GoneError           not stored, and gone from GitHub               HTTP 410
├── StoreError              the database cannot be used                    HTTP 503, exit 1
│   └── SchemaError         its schema is older or newer than the code     HTTP 503, exit 1
├── GitHubError             an error or an invalid response from GitHub    exit 1
│   ├── RefusedError        an error status that a retry does not help     exit 1
│   └── UnreachableError    GitHub could not be reached                    exit 1
├── ReaderError             the model reader's server failed or refused    exit 1
└── ServerError             a remote triage server failed (`--url`)        exit 1
"""


class TriageError(Exception):
    """Base class; `str(error)` is a one-line message for users.

    Args:
        message: what is wrong and what to do, without secrets or text from outside.
    """

    status = 500
    exit_code = 1

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ConfigError(TriageError):
    exit_code = 2


class InputError(TriageError):
    status = 422


class EmptyInputError(InputError):
    pass


class UnknownVersionError(InputError):
    exit_code = 2


class TooLargeError(InputError):
    status = 413


class NotTextError(InputError):
    status = 415


class AddressError(InputError):
    exit_code = 2


class WeekError(InputError):
    exit_code = 2


class VersionOrderError(InputError):
    exit_code = 2


class PullRequestError(InputError):
    pass


class NotFoundError(TriageError):
    status = 404


class GoneError(NotFoundError):
    status = 410


class StoreError(TriageError):
    status = 503


class SchemaError(StoreError):
    pass


class GitHubError(TriageError):
    status = 502


class RefusedError(GitHubError):
    """GitHub refused a request; `answer` is the HTTP status."""

    def __init__(self, message: str, answer: int) -> None:
        super().__init__(message)
        self.answer = answer


class UnreachableError(GitHubError):
    pass


class ReaderError(TriageError):
    status = 502


class ServerError(TriageError):
    status = 502
