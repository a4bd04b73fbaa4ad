"""An event loop without a machine: waiting moves the program's clock on, and there is nothing else to wait for."""

import asyncio
import asyncio.base_events
import asyncio.events

import clock


class _Selector:
    """Nothing ever happens outside: a wait without an end would be one forever."""

    def select(self, timeout):
        if timeout is None:
            raise RuntimeError("the program waits for something that cannot happen in the sandbox")
        if timeout > 0:
            clock.sleep(timeout)
        return []

    def close(self):
        pass


class _Loop(asyncio.base_events.BaseEventLoop):
    def __init__(self):
        super().__init__()
        self._selector = _Selector()

    def time(self):
        return clock.monotonic()

    def _process_events(self, events):
        pass

    def _write_to_self(self):
        pass

    def run_in_executor(self, executor, function, *arguments):
        """There are no threads: what would run in one runs at once."""
        future = self.create_future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


async def _to_thread(function, /, *arguments, **named):
    return function(*arguments, **named)


asyncio.new_event_loop = asyncio.events.new_event_loop = _Loop
asyncio.to_thread = asyncio.threads.to_thread = _to_thread
asyncio.runners.events.new_event_loop = _Loop


def run(awaitable):
    """Runs a program that awaits outside of functions."""
    asyncio.run(awaitable)
