"""Rate limiters and their Redis."""
import os
import re
import signal

from faults.base import Calls, Fault


class LimiterStops(Calls):
    """one of two rate limiters hangs while requests come"""
    alerts = ("ReplicaNotUsed",)
    stopped = ("ratelimit",)

    def begin(self, observed):
        self.pids = [observed.pid_of(name) for name in self.stopped]
        for pid in self.pids:
            os.kill(pid, signal.SIGSTOP)
        super().begin(observed)

    def end(self, observed):
        for pid in self.pids:
            os.kill(pid, signal.SIGCONT)
        super().end(observed)

    def call(self, observed):
        observed.chat(key=observed.facts["keys"]["roomy"])


class LimitersStop(LimiterStops):
    """all rate limiters hang while requests come"""
    alerts = ("GatewayWithoutLimiter",)
    stopped = ("ratelimit", "ratelimit-2")


class RedisStops(Fault):
    """Redis is stopped"""
    alerts = ("LimiterWithoutRedis",)

    def begin(self, observed):
        observed.redis.terminate()
        observed.redis.wait()

    def end(self, observed):
        observed.start_redis()


class LimitersWithoutRedis(Calls):
    """two rate limiters run without the Redis that they should share"""
    alerts = ("LimitersDoNotShareTheirState",)
    names = ("ratelimit", "ratelimit-2")
    patience = 120  # ends a minute after the last response of a separate limiter

    def begin(self, observed):
        self.running = {name: observed.replace(name, lambda text: re.sub(r"  redis_url: .*\n", "", text)) for name in self.names}
        super().begin(observed)

    def end(self, observed):
        for name, running in self.running.items():
            observed.restore(name, running)

    def call(self, observed):
        observed.chat(key=observed.facts["keys"]["roomy"])

    def put_back(self, observed):
        super().end(observed)


FAULTS = (LimiterStops, LimitersStop, RedisStops, LimitersWithoutRedis)
