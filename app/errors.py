"""The one error family. Every message names the thing, the fault and what to do.

TriageError                 anything the program refuses or cannot do
├── ConfigError             a setting is missing or wrong                  exit 2
├── InputError              what the caller sent cannot be used            HTTP 422, exit 1
│   ├── EmptyInputError     nothing but blanks                             HTTP 422
│   ├── TooLargeError       over the limit of the way in                   HTTP 413
│   ├── NotTextError        bytes that are no text                         HTTP 415
│   ├── AddressError        no issue's address, or another repository's    HTTP 422, exit 2
│   ├── UnknownVersionError no release has it, and none to come will       HTTP 422, exit 2
│   ├── WeekError           no week of the calendar                        HTTP 422, exit 2
│   ├── VersionOrderError   an upgrade to a version that is not newer      HTTP 422, exit 2
│   └── PullRequestError    an issue was asked for, it is a pull request   HTTP 422
├── NotFoundError           nothing is stored under that name              HTTP 404
│   └── GoneError           nothing is, and GitHub has it no more          HTTP 410
├── StoreError              the database cannot be used                    HTTP 503, exit 1
│   └── SchemaError         its schema is older or newer than the code     HTTP 503, exit 1
├── GitHubError             GitHub refused, or answered what cannot be read  exit 1
│   ├── RefusedError        it answered a status that no retry helps       exit 1
│   └── UnreachableError    GitHub could not be reached at all             exit 1
├── ReaderError             the model reader's server gave out or refused  exit 1
└── ServerError             a remote triage server failed (`--url`)        exit 1
"""


class TriageError(Exception):
    """Base of the family; `str(error)` is one line fit to show a person.

    Args:
        message: what is at fault and what to do, without secrets or foreign text.
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
    """Args: message, and the `answer` that GitHub gave, as an HTTP status."""

    def __init__(self, message: str, answer: int) -> None:
        super().__init__(message)
        self.answer = answer


class UnreachableError(GitHubError):
    pass


class ReaderError(TriageError):
    status = 502


class ServerError(TriageError):
    status = 502
