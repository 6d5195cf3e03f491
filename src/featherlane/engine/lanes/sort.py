"""Sorting of integers: merge sort, or radix sort for many."""

from featherlane.engine.lanes import kernel


@kernel
def merge(source, out, start, middle, end):
    """Merges sorted runs of `source`, start .. middle - 1 and middle .. end - 1, into the same positions of `out`."""
    i, j = start, middle
    for k in range(start, end):
        if j >= end or (i < middle and source[i] <= source[j]):
            out[k] = source[i]
            i += 1
        else:
            out[k] = source[j]
            j += 1


@kernel
def sort(keys, buffer, n):
    """Sorts the first n keys in ascending order; `buffer` is a buffer of the same size.

    Source: bottom-up merge sort, O(n log n) for every initial order.
    """
    # sorted runs of `run` keys, twice as long after each pass
    run = 1
    while run < n:
        for start in range(0, n, 2 * run):
            middle = start + run if start + run < n else n
            end = middle + run if middle + run < n else n
            merge(keys, buffer, start, middle, end)
        for k in range(n):
            keys[k] = buffer[k]
        run = 2 * run


DIGIT_BITS = 10  # bits of a digit of `sort_digits`


@kernel
def sort_digits(keys, buffer, count, n, low, high):
    """Sorts the first n keys by their bits low .. high - 1, ascending; the sort is stable.

    `buffer` has n entries, `count` has 2^DIGIT_BITS.  Each pass sorts by one digit of DIGIT_BITS bits; the last digit
    may contain bits from `high` on.
    Source: D. Knuth, The Art of Computer Programming, vol. 3, sec. 5.2.5 (radix sort by distribution counting, from
        the lowest digit on).
    """
    for shift in range(low, high, DIGIT_BITS):
        for digit in range(1 << DIGIT_BITS):
            count[digit] = 0
        for k in range(n):
            digit = (keys[k] >> shift) & ((1 << DIGIT_BITS) - 1)
            count[digit] = count[digit] + 1
        # count <- the first position of each digit
        position = 0
        for digit in range(1 << DIGIT_BITS):
            position, count[digit] = position + count[digit], position
        for k in range(n):
            digit = (keys[k] >> shift) & ((1 << DIGIT_BITS) - 1)
            buffer[count[digit]] = keys[k]
            count[digit] = count[digit] + 1
        for k in range(n):
            keys[k] = buffer[k]


@kernel
def drop_repeats(keys, n):
    """Removes duplicates from the first n keys, which are sorted; returns the number of remaining keys."""
    number = 0
    for k in range(n):
        if k == 0 or keys[k] != keys[k - 1]:
            keys[number] = keys[k]
            number += 1
    return number
