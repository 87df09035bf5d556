"""The result of a run as text for people, with each aim beside its figure."""

from __future__ import annotations

from typing import Any


def render(result: dict[str, Any]) -> str:
    lines = [f"{result['at']}  Python {result['python']}, {result['cores']} cores, load {result['load_before']:.1f}"]
    if redis := result.get("redis"):
        lines += ["", _row("bare Redis round trips a second", f"{redis['round_trips']:.0f}")]
        lines += [_row("  commands a second, 16 a pipeline", f"{redis['pipelined_commands']:.0f}")]
    if session := result.get("session"):
        lines += [
            _row(
                "load + save of a session, us",
                f"{session['riding_us']:.0f}",
                f"{session['riding_ratio']:.2f} x one pipelined round trip ({session['bare_us']:.0f})",
                "1.3 x",
            ),
            _row(
                "  by itself, not with a turn's calls",
                f"{session['load_save_us']:.0f}",
                f"{session['ratio']:.2f} x",
            ),
            _row(
                "idle session in Redis, bytes",
                f"{session['redis_bytes']:.0f}",
                f"{session['bytes_ratio']:.2f} x its text ({session['text_bytes']})",
                "1.5 x",
            ),
        ]
    if hooks := result.get("webhooks"):
        lines += [
            _row(
                "webhooks acknowledged a second",
                f"{hooks['ours_a_second']:.0f}",
                f"{hooks['ratio']:.2f} x a bare endpoint ({hooks['bare_a_second']:.0f})",
                "0.6 x",
            ),
            _row(
                "  p50 / p99 at half that rate, ms",
                f"{hooks['half_p50_ms']:.1f} / {hooks['half_p99_ms']:.1f}",
                f"a bare endpoint's p99 at the same: {hooks['half_bare_p99_ms']:.1f}",
                "p99 10",
            ),
        ]
    for name, row in result.get("redis_a_turn", {}).items():
        figures = f"{row['round_trips']:.1f} round trips, {row['scripts']:.1f} scripts, {row['commands']:.0f} commands"
        lines.append(_row(f"Redis a turn, {name}", figures))
    if turns := result.get("turns"):
        lines += ["", _turn_head()]
        lines += [turn(row) for row in turns]
        lines.append(f"answered twice: {result['doubles']}. CPU without Redis, which is shown beside it. Times without")
        lines.append("the model's. Sustained: 32 (model 300 ms: 128) customers waiting at any time.")
        lines.append("Aims with full histories: CPU 0.5 x, sustained 1.5 x (model 300 ms).")
        for row in turns:
            if "fast_p50_ms" in row:
                what = f"added at 100 a second, ms: {row['bot']}, {row['model_ms']:.0f} "
                figures = f"{row['fast_p50_ms']:.1f} / {row['fast_p99_ms']:.1f}"
                lines.append(f"{what:50}{figures:>14}     aim: p50 8, p99 40")
    if stages := result.get("stages"):
        lines += [
            "",
            "CPU ms a message on LINE, full histories: " + ", ".join(f"{k} {v:.2f}" for k, v in stages.items()),
        ]
    if "first_answer_s" in result:
        lines += ["", _row("`run` to the first answer, s", f"{result['first_answer_s']:.2f}", "", "3")]
        lines += [_row("`--help`, s", f"{result['help_s']:.2f}", "", "0.3")]
    for name, size in result.get("resident_mb", {}).items():
        aim = {"serve": "150", "worker": "220"}.get(name, "")
        lines.append(_row(f"resident, {name}, MB", f"{size:.0f}", "", aim))
    return "\n".join(lines)


def _row(what: str, figure: str, beside: str = "", aim: str = "") -> str:
    return f"{what:36}{figure:>14}  {beside}{'   aim: ' + aim if aim else ''}".rstrip()


def _turn_head() -> str:
    return (
        f"{'bot':19}{'history':>8}{'model':>7}{'CPU ms':>8}{'x':>6}{'Redis':>7}"
        f"{'p50':>7}{'p99':>7}{'sustained':>11}{'x':>6}{'lost':>6}  CPU each"
    )


def turn(row: dict[str, Any]) -> str:
    each = ", ".join(f"{name} {ms:.2f}" for name, ms in row["cpu_ms_each"].items() if name != "redis")
    cpu, rate = (f"{row[key]:.2f}" if row.get(key) else "" for key in ("cpu_ratio", "rate_ratio"))
    sustained = "" if row["sustained"] is None else f"{row['sustained']:.0f}"
    return (
        f"{row['bot']:19}{row['history']:>8}{row['model_ms']:>7.0f}{row['cpu_ms']:>8.2f}{cpu:>6}"
        f"{row['cpu_ms_each']['redis']:>7.2f}{row['p50_ms']:>7.1f}{row['p99_ms']:>7.1f}{sustained:>11}{rate:>6}"
        f"{row['lost'] + row['refused']:>6}  {each}"
    )
