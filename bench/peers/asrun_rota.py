"""Rota by `rota worker`, on any store, as it comes."""

from asrun_work import URL, main, work

from rota import App

app = App(URL)
task = app.task(name="work")(work)

if __name__ == "__main__":
    app.open()
    main(task.enqueue, lambda count: app.enqueue_many([task.job(number, "word") for number in range(count)]))
