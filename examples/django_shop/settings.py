"""The settings of a small shop. Rota keeps its jobs in the shop's own database."""

import os
from pathlib import Path

FOLDER = Path(os.environ.get("SHOP_FOLDER", Path(__file__).parent))
SECRET_KEY = "only for this example: a real site has its own secret"  # noqa: S105
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
USE_TZ = True
TIME_ZONE = "Europe/Paris"
LOGIN_URL = "admin:login"
ROOT_URLCONF = "urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": FOLDER / "shop.db",
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},  # a writer waits for others before it has read anything
    }
}
INSTALLED_APPS = [
    "rota.django",
    "shop",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL = "static/"
ROTA = {"name": "shop", "version": "1", "worker": {"concurrency": 4}}
