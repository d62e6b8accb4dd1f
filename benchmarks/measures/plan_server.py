"""CPU of the PostgreSQL server on this machine: its processes are not the client's children."""

from pathlib import Path


class ServerCpu:
    """Of the connections that are open now; 0 where there is no server, or no /proc."""

    def __init__(self, url: str | None) -> None:
        self._pids = [] if url is None else _backends(url)
        self._before = self._now_ms()

    def spent_ms(self) -> float:
        return self._now_ms() - self._before

    def _now_ms(self) -> float:
        return sum(map(_cpu_ns, self._pids)) / 1e6


def _backends(url: str) -> list[int]:
    import psycopg

    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid != pg_backend_pid()"
        )
        return [row[0] for row in rows.fetchall()]


def _cpu_ns(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0])
    except OSError:
        return 0
