"""gunicorn, as `recap serve` runs it once the schema is there."""

from gunicorn.app.wsgiapp import WSGIApplication

from recap_server import end_on_sigterm


class Server(WSGIApplication):
    """gunicorn with its working folder for `.env` and the data alone, not for modules."""

    def chdir(self) -> None:
        """Leave the path of modules as it is: a `config.py` of the folder's project is not Recap's."""


if __name__ == "__main__":
    end_on_sigterm()  # until gunicorn has handlers of its own, which is after it has loaded the application
    Server("%(prog)s [OPTIONS] wsgi:app").run()
