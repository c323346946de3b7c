"""Makes the permissions of the dashboard; there is no table."""

from typing import Any, ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies: ClassVar[list[Any]] = []

    operations: ClassVar[list[Any]] = [
        migrations.CreateModel(
            name="Dashboard",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
            ],
            options={
                "verbose_name": "dashboard",
                "verbose_name_plural": "Dashboard",
                "permissions": (
                    ("view_dashboard", "Can look at jobs and schedules"),
                    ("operate_dashboard", "Can change jobs and schedules"),
                    ("administer_dashboard", "Can change jobs and schedules, and manage tokens"),
                ),
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
