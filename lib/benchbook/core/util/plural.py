"""Numbers with their nouns, as every sentence writes them."""


def count(number: int, noun: str) -> str:
    """Write a number with its noun.

    >>> count(1, "thread"), count(5, "thread")
    ('1 thread', '5 threads')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def as_sentence(text: str) -> str:
    """Write a reason as a sentence, whether or not it ends as one.

    >>> as_sentence("it is a text"), as_sentence("It is a text.")
    ('It is a text.', 'It is a text.')
    """
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
