"""Seeded secrets in the forms in which logs print them; made anew in each run, so none stands in a file.

`SHAPES` maps a name to what makes a (line or lines, secret): the secret must not come out again.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"
Shape = tuple[str, str]


def word(rnd: random.Random, length: int, signs: str = LETTERS) -> str:
    """A random word with a digit and a letter in it."""
    middle = "".join(rnd.choice(signs) for _ in range(length - 2))
    return rnd.choice("bcdfa") + middle + rnd.choice("23456789")


def _after(head: str, length: int, line: str, signs: str = LETTERS) -> Callable[[random.Random], Shape]:
    """A secret that begins with `head`, put into `line` at `@@`."""

    def make(rnd: random.Random) -> Shape:
        secret = head + word(rnd, length, signs)
        return line.replace("@@", secret), secret

    return make


def _in(line: str, length: int = 24, signs: str = LETTERS) -> Callable[[random.Random], Shape]:
    return _after("", length, line, signs)


def _aws(head: str, line: str) -> Callable[[random.Random], Shape]:
    signs = string.ascii_uppercase + "234567"
    return _numbers(line, lambda rnd: head + "".join(rnd.choice(signs) for _ in range(16)))


def _key_block(kind: str, template: str) -> Callable[[random.Random], Shape]:
    def make(rnd: random.Random) -> Shape:
        lines = [word(rnd, 64, LETTERS + "+/") for _ in range(5)]
        begin, end = ("-----" + side + " " + kind + " PRIVATE KEY-----" for side in ("BEGIN", "END"))
        return template.format(begin=begin, body="\n".join(lines), end=end), lines[2]

    return make


def _jwt(line: str) -> Callable[[random.Random], Shape]:
    def make(rnd: random.Random) -> Shape:
        token = ".".join(
            ["ey" + "J" + word(rnd, 30), "ey" + "J" + word(rnd, 60), word(rnd, 43, LETTERS + "-_")]
        )
        return line.replace("@@", token), token

    return make


def _base64(line: str) -> Callable[[random.Random], Shape]:
    def make(rnd: random.Random) -> Shape:
        secret = base64.b64encode(f"user:{word(rnd, 13)}".encode()).decode()
        return line.replace("@@", secret), secret

    return make


def _numbers(line: str, make_secret: Callable[[random.Random], str]) -> Callable[[random.Random], Shape]:
    def make(rnd: random.Random) -> Shape:
        secret = make_secret(rnd)
        return line.replace("@@", secret), secret

    return make


def _ip4(first: str) -> Callable[[random.Random], str]:
    missing = 3 - first.count(".")
    return lambda rnd: ".".join([first, *(str(rnd.randrange(11, 250)) for _ in range(missing))])


def _ip6(rnd: random.Random) -> str:
    return ":".join(["2001", "db8", *(word(rnd, 4, HEX) for _ in range(6))])


def _person(rnd: random.Random) -> str:
    return "m" + "".join(rnd.choice(string.ascii_lowercase) for _ in range(7))


INFO = "(APIServer pid=412) INFO 06-03 03:12:44 [api_server.py:866] "
ESC = "\x1b"

SHAPES: dict[str, Callable[[random.Random], Shape]] = {
    # tokens that tell themselves
    "hub token bare": _after("hf" + "_", 34, "token @@ is invalid"),
    "hub token variable": _after("hf" + "_", 34, "HF_TOKEN=@@ vllm serve m"),
    "hub token old variable": _after("hf" + "_", 34, "export HUGGING_FACE_HUB_TOKEN=@@"),
    "hub token coloured": _after("hf" + "_", 34, f"HF_TOKEN{ESC}[0m={ESC}[32m@@{ESC}[0m"),
    "hub token in a fallback": _after("hf" + "_", 34, "token=${HF_TOKEN:-@@}"),
    "hub organisation token": _after("api_" + "org_", 34, "login @@"),
    "openai old": _after("sk" + "-", 48, "OPENAI_API_KEY=@@"),
    "openai project": _after("sk" + "-proj-", 80, "Incorrect API key provided: @@.", LETTERS + "-_"),
    "openai coloured": _after("sk" + "-", 48, f"key {ESC}[1;33m@@{ESC}[0m"),
    "anthropic": _after("sk" + "-ant-api03-", 90, "'x-api-key': '@@'", LETTERS + "-_"),
    "github person": _after("gh" + "p_", 36, "git clone https://@@@github.com/o/r"),
    "github oauth": _after("gh" + "o_", 36, "token: @@"),
    "github server": _after("gh" + "s_", 36, "GITHUB_TOKEN: @@"),
    "github user": _after("gh" + "u_", 36, "(@@)"),
    "github fine": _after("github" + "_pat_", 82, "GH_TOKEN=@@", LETTERS + "_"),
    "gitlab": _after("gl" + "pat-", 20, "PRIVATE-TOKEN: @@", LETTERS + "-_"),
    "aws key": _aws("AK" + "IA", "aws_access_key_id = @@"),
    "aws session key": _aws("AS" + "IA", "Credential=@@/20260101/us-east-1"),
    "aws secret in a file": _in("aws_secret_access_key = @@", 40, LETTERS + "/+"),
    "aws secret variable": _in("AWS_SECRET_ACCESS_KEY=@@", 40, LETTERS + "/+"),
    "aws secret in JSON": _in('{"SecretAccessKey": "@@", "Expiration": "x"}', 40, LETTERS + "/+"),
    "aws session token": _in("AWS_SESSION_TOKEN=@@", 120, LETTERS + "/+"),
    "google key": _after(
        "AI" + "za", 35, "https://generativelanguage.googleapis.com/v1?key=@@", LETTERS + "-_"
    ),
    "google access": _after("ya" + "29.", 60, "gcloud: @@", LETTERS + "-_"),
    "slack bot": _after("xo" + "xb-", 40, "SLACK_TOKEN @@", string.digits + string.ascii_letters),
    "slack person": _after("xo" + "xp-", 40, "@@"),
    "slack web hook": _in("https://hooks.slack.com/services/T0/B0/@@", 24),
    "stripe": _after("sk" + "_live_", 24, "stripe @@"),
    "npm": _after("np" + "m_", 36, "//packages.example/:_authToken=@@"),
    "pypi": _after("py" + "pi-", 100, "twine upload -p @@", LETTERS + "-_"),
    "nvidia": _after("nv" + "api-", 64, "NGC_API_KEY: @@", LETTERS + "-_"),
    "replicate": _after("r8" + "_", 37, "replicate @@"),
    "groq": _after("gs" + "k_", 52, "groq @@"),
    "sendgrid": _numbers("mail @@", lambda rnd: ".".join(["S" + "G", word(rnd, 22), word(rnd, 43)])),
    "twilio": _numbers("sms @@ sent", lambda rnd: "S" + "K" + word(rnd, 32, HEX)),
    "telegram": _numbers(
        "bot @@ started", lambda rnd: str(rnd.randrange(10**8, 10**9)) + ":AA" + word(rnd, 33)
    ),
    "telegram address": _numbers(
        "https://api.telegram.org/bot@@/getMe",
        lambda rnd: str(rnd.randrange(10**8, 10**9)) + ":AA" + word(rnd, 33),
    ),
    "discord": _numbers(
        "client @@", lambda rnd: ".".join(["M" + word(rnd, 23), word(rnd, 6), word(rnd, 38)])
    ),
    "discord web hook": _in("https://discord.com/api/webhooks/123456789012345678/@@", 68),
    "vault": _after("hv" + "s.", 24, "vault @@"),
    "jwt": _jwt("id @@"),
    "service account": _jwt("kubectl --token=@@ get pods"),
    # under their names
    "wandb": _in("WANDB_API_KEY=@@", 40, HEX),
    "wandb log-in": _in("wandb login @@", 40, HEX),
    "vllm variable": _in("VLLM_API_KEY=@@"),
    "vllm flag": _in("vllm serve m --api-key @@ --port 8000"),
    "vllm flag with a sign": _in("vllm serve m --api-key=@@"),
    "vllm flag in a list": _in("argv: ['vllm', 'serve', '--api-key', '@@', '--port', '8000']"),
    "vllm flag on the next line": _in("vllm serve m \\\n  --api-key \\\n  @@"),
    "namespace": _in(INFO + "args: Namespace(host=None, api_key='@@', model='m')"),
    "namespace with a list": _in(INFO + "non-default args: {'api_key': ['@@'], 'model': 'm'}"),
    "namespace with two keys": _in("api_key=['EMPTY-1-x', '@@'], model='m'"),
    "namespace hub": _in(INFO + "EngineArgs(model='m', hf_token='@@', seed=0)"),
    "dict": _in("{'model': 'm', 'hf_token': '@@'}"),
    "JSON": _in('{"token": "@@"}'),
    "JSON in JSON": _in('{"body": "{\\"api_key\\": \\"@@\\"}"}'),
    "YAML": _in("auth:\n  password: @@\n  user: x"),
    "YAML in two lines": _in("hf_token:\n  '@@'"),
    "kubernetes": _in("- name: HF_TOKEN\n  value: @@"),
    "locals": _in("    api_key    = '@@'"),
    "coloured name": _in(f"{ESC}[35mapi_key{ESC}[0m={ESC}[32m'@@'{ESC}[0m"),
    "environ": _in("os.environ['HF_TOKEN'] = '@@'"),
    "setdefault": _in('os.environ.setdefault("HF_TOKEN", "@@")'),
    "declare": _in('declare -x COHERE_API_KEY="@@"', 40),
    "power shell": _in('$env:MISTRAL_API_KEY="@@"', 32),
    "together": _in("TOGETHER_API_KEY: @@", 64, HEX),
    "docker": _in("docker run -e HF_TOKEN=@@ vllm/vllm-openai"),
    "azure key": _in("AZURE_OPENAI_KEY=@@", 32, HEX),
    "azure storage": _in(
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=@@==;EndpointSuffix=x", 86, LETTERS + "/+"
    ),
    "azure signature": _in("https://a.blob.core.windows.net/c/m?sv=2024-01-01&sig=@@%3D", 43),
    "presigned": _in("https://b.s3.amazonaws.com/m?X-Amz-Signature=@@", 64, HEX),
    "password": _in("password=@@"),
    "password with signs": _numbers(
        "DB_PASSWORD=@@", lambda rnd: word(rnd, 8) + "," + word(rnd, 8) + ";)" + word(rnd, 4)
    ),
    "postgres password": _in("PGPASSWORD=@@ psql -h db"),
    "password prompt": _in("Password: @@"),
    "client secret": _in('client_secret="@@"'),
    # headers
    "bearer": _in("Authorization: Bearer @@", 40),
    "bearer as curl sends it": _in("curl -H 'Authorization: Bearer @@' http://localhost:8000/v1/models", 40),
    "bearer as a pair": _in("headers: [(b'authorization', b'Bearer @@')]", 40),
    "token header": _in("'Authorization': 'Token @@'", 40),
    "basic": _base64("Authorization: Basic @@"),
    "curl user": _in("curl -u admin:@@ http://localhost"),
    "key header": _in("x-api-key: @@"),
    "key header as a pair": _in("(b'x-api-key', b'@@')"),
    "cookie": _in("Cookie: theme=dark; session=@@"),
    "set cookie": _in("set-cookie: sid=@@; HttpOnly"),
    "session header": _in("X-Session-Token: @@"),
    "docker file": _base64('{"auths": {"ghcr.io": {"auth": "@@"}}}'),
    "netrc": _in("machine huggingface.co login me password @@"),
    "query": _in("GET /v1/models?api_key=@@ HTTP/1.1"),
    # addresses with credentials
    "redis": _in("redis://:@@@cache:6379/0"),
    "postgres": _in("postgresql+psycopg://triage:@@@db/triage"),
    "mongo": _in("mongodb+srv://u:@@@cluster0.x.mongodb.net"),
    "proxy": _in("https_proxy=http://u:@@@proxy:3128"),
    "git": _in("git+https://oauth2:@@@gitlab.example.com/g/p.git"),
    # key blocks
    "key block": _key_block("RSA", "{begin}\n{body}\n{end}"),
    "ssh key block": _key_block("OPENSSH", "key:\n{begin}\n{body}\n{end}"),
    "key block cut off": _key_block("EC", "{begin}\n{body}\n"),
    "key block without its head": _key_block("RSA", "{body}\n{end}"),
    # people and hosts
    "e-mail": _numbers("mailto @@ failed", lambda rnd: f"{_person(rnd)}.x@{_person(rnd)}.example.com"),
    "address of a worker": _numbers("(RayWorkerWrapper pid=7, ip=@@) ERROR", _ip4("10")),
    "address with a port": _numbers("tcp://@@:29500", _ip4("172.20")),
    "address in a sentence": _numbers("no route to @@.", _ip4("203")),
    "address variable": _numbers("MASTER_ADDR=@@", _ip4("10")),
    "addresses in a row": _numbers("peers 192.168.7.9,@@", _ip4("192.168")),
    "public address": _numbers("client @@ - GET /health", _ip4("8")),
    "newer address": _numbers("[@@]:29500", _ip6),
    "newer address in a sentence": _numbers("bind @@ failed", _ip6),
    "host of EC2": _numbers("ip-@@.ec2.internal", lambda rnd: _ip4("10")(rnd).replace(".", "-")),
    "home": _numbers('  File "/home/@@/vllm/run.py", line 3, in main', _person),
    "home at the end": _numbers("HOME=/home/@@", _person),
    "home of a mac": _numbers("/Users/@@/models/m", _person),
    "home of windows": _numbers("C:\\Users\\@@\\models", _person),
    "home of windows in JSON": _numbers('"C:\\\\Users\\\\@@\\\\models"', _person),
    "user variable": _numbers("USER=@@", _person),
    "prompt": _numbers("(base) @@@gpu-node-7:~/vllm$ vllm serve m", _person),
}


def make_all(seed: int) -> dict[str, Shape]:
    """Each shape's text and secret, the same for the same seed."""
    return {name: make(random.Random(f"{seed} {name}")) for name, make in SHAPES.items()}


def shown_forms(secret: str) -> tuple[str, ...]:
    """How a secret may look where it comes out: as it is, escaped as in JSON, in lower case, cut at both ends."""
    middle = secret[4:-4] if len(secret) >= 20 else secret
    return tuple({middle, middle.lower(), json.dumps(middle)[1:-1]})
