"""Rota's worker processes under their parent, as `rota worker --processes` starts them."""

from cpu_work import URL, main, work

from rota import App

app = App(URL)
task = app.task(name="work")(work)

if __name__ == "__main__":
    main(lambda count: app.enqueue_many([task.job() for _ in range(count)]))
