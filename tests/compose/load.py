"""Calls of the official client, one after the other in several threads, until standard input ends: load.py BASE_URL KEY CALLERS TOKENS MODEL.
Prints the outcome of each call as one line of JSON. The client's own retries are off, so that nothing is hidden."""
import json
import sys
import threading
import time

from openai import APIError, APIStatusError, OpenAI

BASE, KEY, CALLERS, TOKENS, MODEL = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
stop, lock = threading.Event(), threading.Lock()


def call(client, streamed, tokens):
    """What a caller receives: whether its answer has begun, the received output, whether it is complete, an error."""
    seen = {"at": time.monotonic(), "streamed": streamed, "begun": False, "output": 0, "whole": False, "error": "", "seconds": time.monotonic()}
    try:
        answer = client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}],
                                                stream=streamed, max_tokens=tokens + 100, extra_body={"x_sim": {"tokens": tokens}})
        seen["begun"] = True
        if streamed:
            for chunk in answer:
                seen["output"] += bool(chunk.choices and chunk.choices[0].delta.content)
                seen["whole"] = seen["whole"] or bool(chunk.choices and chunk.choices[0].finish_reason)
        else:
            seen["output"], seen["whole"] = 1, answer.choices[0].finish_reason is not None
    except APIStatusError as error:
        seen["error"] = f"{error.status_code} {error.message}"
    except APIError as error:  # also raised by a broken connection
        seen["error"] = f"{type(error).__name__} {error.message}"
    except Exception as error:  # raised by the HTTP library for a cut connection
        seen["error"] = f"{type(error).__name__} {error}"
    seen["seconds"] = round(time.monotonic() - seen["seconds"], 3)
    return seen


def work(number):
    client = OpenAI(base_url=BASE, api_key=KEY, max_retries=0, timeout=180)
    turn = number
    while not stop.is_set():
        # Every fourth caller's streams are the longest, the others' short, and every third call is not streamed.
        streamed = turn % 3 != 0
        seen = call(client, streamed, TOKENS if streamed and number % 4 == 0 else min(TOKENS, 120))
        turn += 1
        with lock:
            print(json.dumps(seen), flush=True)
        if seen["error"]:
            time.sleep(0.05)  # no busy loop


threads = [threading.Thread(target=work, args=(number,)) for number in range(CALLERS)]
for thread in threads:
    thread.start()
sys.stdin.read()
stop.set()
for thread in threads:
    thread.join()
