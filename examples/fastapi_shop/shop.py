"""A small shop: FastAPI, SQLAlchemy and Rota in one database, with the dashboard behind the shop's own login.

`python shop.py` starts all of it. In production, `uvicorn shop:site` and `rota run shop.py` are processes of their own.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator  # noqa: TC003 - FastAPI reads the hints when it starts
from contextlib import asynccontextmanager
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, Form, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from starlette.middleware.sessions import SessionMiddleware

from rota import App, current_job, every
from rota.web import Person

DATABASE = os.environ.get("SHOP_DATABASE", "sqlite:///shop.db")
STOCK = {"chair": 40, "table": 120}  # prices
PEOPLE = {"ann": ("red", "operate"), "bob": ("blue", None)}  # passwords, and what they may do in the dashboard

app = App(DATABASE, name="shop")


# The database. An async engine serves one event loop, and tasks run on another one than the site.


def make_sessions() -> async_sessionmaker[AsyncSession]:
    url = DATABASE.replace("sqlite:", "sqlite+aiosqlite:").replace("postgresql:", "postgresql+psycopg:")
    return async_sessionmaker(create_async_engine(url), expire_on_commit=False)


sessions, task_sessions = make_sessions(), make_sessions()


class Base(DeclarativeBase):
    """The tables of the shop."""


class Order(Base):
    """What somebody has bought."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]
    price: Mapped[int]
    is_paid: Mapped[bool] = mapped_column(default=False)


class Report(Base):
    """What was sold until some time."""

    __tablename__ = "reports"
    id: Mapped[str] = mapped_column(primary_key=True)  # of the job: however often it runs, it has one report
    sold: Mapped[int]


# The jobs.


@app.task(retries=5)
async def charge(order_id: int) -> str:
    """Charge an order. The payment and the end of the job commit together."""
    async with task_sessions.begin() as session:
        order = await session.get_one(Order, order_id)
        order.is_paid = True
        receipt = f"{order.item}: {order.price}"
        await session.flush()
        await current_job.afinish_in(session, receipt)
    return receipt


@app.schedule(every("10s"), id="sales")
async def count_sales() -> int:
    """Sum up what was paid."""
    async with task_sessions.begin() as session:
        sold = await session.scalar(select(func.coalesce(func.sum(Order.price), 0)).where(Order.is_paid))
        session.add(Report(id=current_job.id, sold=int(sold or 0)))
        await current_job.afinish_in(session, int(sold or 0))
    return int(sold or 0)


# The site.


@asynccontextmanager
async def lifespan(_site: FastAPI) -> AsyncIterator[None]:
    async with sessions.kw["bind"].begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with app.running(concurrency=4):  # leave this out if `rota run` runs the jobs
        yield
    await asyncio.gather(*(made.kw["bind"].dispose() for made in (sessions, task_sessions)))
    app.close()


async def begin_session() -> AsyncIterator[AsyncSession]:
    async with sessions() as session:
        yield session


Session = Annotated[AsyncSession, Depends(begin_session)]
site = FastAPI(title="A shop", lifespan=lifespan)


@site.get("/")
async def show_shop(request: Request, session: Session) -> HTMLResponse:
    orders = await session.scalars(select(Order).order_by(Order.id.desc()).limit(20))
    rows = "".join(f"<li>{one.item}, {one.price}: {'paid' if one.is_paid else 'open'}</li>" for one in orders)
    buttons = "".join(
        f'<button name="item" value="{item}">Buy a {item} for {price}</button> ' for item, price in STOCK.items()
    )
    who = request.session.get("user", "nobody")
    return HTMLResponse(
        f'<h1>A shop</h1><form method="post" action="/orders">{buttons}</form><ul>{rows}</ul>'
        f'<p>You are {who}. <a href="/login">Log in</a>, <a href="/rota/">dashboard</a></p>'
    )


@site.post("/orders")
async def order(item: Annotated[str, Form()], session: Session) -> RedirectResponse:
    placed = Order(item=item, price=STOCK.get(item, 0))
    session.add(placed)
    await session.flush()
    await charge.using(tx=session).aenqueue(placed.id)
    if item not in STOCK:
        raise HTTPException(404, f"there is no {item} here")  # the order and its job are rolled back
    await session.commit()
    return RedirectResponse("/", 303)


@site.get("/reports")
async def reports(session: Session) -> list[int]:
    return list(await session.scalars(select(Report.sold)))


# The login, and the dashboard behind it.


@site.get("/login")
async def show_login() -> HTMLResponse:
    return HTMLResponse(
        '<form method="post"><input name="name" placeholder="ann"> '
        '<input name="password" type="password" placeholder="red"> <button>Log in</button></form>'
    )


@site.post("/login")
async def log_in(
    request: Request,
    name: Annotated[str, Form()],
    password: Annotated[str, Form()],
    next: str = "/",  # noqa: A002
) -> RedirectResponse:
    if name not in PEOPLE or PEOPLE[name][0] != password:
        raise HTTPException(403, "the name or the password is wrong")
    request.session["user"] = name
    return RedirectResponse(next if next.startswith("/rota/") else "/", 303)


async def find_person(request: Request) -> Person | None:
    name = request.session.get("user")
    return Person(name, PEOPLE[name][1]) if name in PEOPLE else None


site.mount("/rota", app.asgi(login=find_person, login_url="/login"))
site.add_middleware(SessionMiddleware, secret_key=os.environ.get("SHOP_SECRET", "for this example alone"))


if __name__ == "__main__":
    uvicorn.run(site, port=int(os.environ.get("SHOP_PORT", "8000")), timeout_graceful_shutdown=5)
