"""Speed-ups over the smallest number of disks, and the table of them."""

import os


def add_speed_ups(points, goal):
    """To each point what it means, given the one with the fewest disks."""
    fewest = min(points)
    alone = points[fewest]["seconds"] * fewest
    for count, point in points.items():
        point["speed_up"] = alone / point["seconds"]
        point["limit_by_cores"] = alone * os.cpu_count() / point["cpu_seconds"]
        point["goal"] = min(goal * count, point["limit_by_cores"])
        point["reached"] = count == fewest or point["speed_up"] >= point["goal"]


def print_table(what, results):
    print(
        f"{what:>10} {'disks':>5} {'seconds':>9} {'speed-up':>9} {'goal':>7} {'cores allow':>12} {'CPU s':>7}"
        f" {'read':>8} {'written':>8}"
    )
    for name, points in results.items():
        for count, point in points.items():
            print(
                f"{name:>10} {count:>5} {point['seconds']:>9.2f} {point['speed_up']:>9.2f} {point['goal']:>7.2f}"
                f" {point['limit_by_cores']:>12.1f} {point['cpu_seconds']:>7.1f} {point['read'] / 1e9:>5.2f} GB"
                f" {point['written'] / 1e9:>5.2f} GB  {'ok' if point['reached'] else 'SHORT'}"
            )
