"""03.4 answers(): tables, slots and their sizes."""

from __future__ import annotations

from minipaged.course.checks.answers import Mistake, Question, answers_check

QUESTIONS = (
    Question(
        "a",
        "position 70",
        "The slot of the token at position 70: block size 32, table [12, 5, 88, 3].",
        88 * 32 + 6,
        (
            Mistake(2 * 32 + 6, "The table was not asked: this is the position itself."),
            Mistake(
                88 + 6, "The offset was added to the number of the block, not to its first slot."
            ),
            Mistake(
                88 * 32 + 70,
                "The whole position was added; only the offset inside the block counts.",
            ),
            Mistake(5 * 32 + 6, "Entries are counted from 0: logical block 2 is the third entry."),
            Mistake(3 * 32 + 6, "Entries are counted from 0: logical block 2 is the third entry."),
            Mistake(88 * 16 + 6, "The block size is another one here, not 16."),
            Mistake(88, "This is the physical block. The slot is a place in it."),
        ),
    ),
    Question(
        "b",
        "slot 1460",
        "Which position stands in slot 1460? Block size 16, table [7, 91, 142].",
        20,
        (
            Mistake(
                91 * 16 + 4, "This is the slot again. Which entry of the table names its block?"
            ),
            Mistake(4, "This is the offset inside the block. Which logical block is it?"),
            Mistake(1, "This is the logical block. Asked for is the position of the token."),
            Mistake(91, "This is the physical block. Where in the table does it stand?"),
            Mistake(2 * 16 + 4, "Entries are counted from 0: the second entry is logical block 1."),
        ),
    ),
    Question(
        "c",
        "bytes of a table",
        "Bytes of the table of a request of 6,000 tokens: block size 32, 4 bytes an entry.",
        752,
        (
            Mistake(6000 * 4, "That is an entry for each token. An entry serves a whole block."),
            Mistake(188, "That is the number of entries. Each of them takes several bytes."),
            Mistake(750, "A begun block needs an entry as well: round up before you multiply."),
            Mistake(748, "A begun block needs an entry as well: round up, not down."),
            Mistake(6000, "That is the number of tokens. How many blocks hold them?"),
            Mistake(375 * 4, "The block size is another one here, not 16."),
            Mistake(
                6000 * 32 * 4, "Divide the tokens by the block size; they were multiplied by it."
            ),
        ),
    ),
    Question(
        "d",
        "entries that change",
        "Entries that are new or change when a token comes at position 47, and then at 48: block "
        "size 16.",
        [0, 1],
        (
            Mistake(
                [1, 1],
                "Not every token needs a new entry: most of them find room in the last block.",
            ),
            Mistake(
                [1, 0], "Positions are counted from 0. Which position is the first of a block?"
            ),
            Mistake(
                [0, 0], "Sooner or later the last block is full, and a token needs another one."
            ),
            Mistake(
                [3, 4], "That is how many entries the table has. Asked for is how many are new."
            ),
            Mistake([2, 3], "Asked for is how many entries are new or change, not which."),
        ),
    ),
    Question(
        "e",
        "no counterpart",
        "The word of an operating system's paging without a counterpart in this lesson.",
        "TLB",
        (
            Mistake("page", "A page is a logical block: as many tokens as fit in a block."),
            Mistake(
                "frame", "A frame is a physical block: the place in memory that is handed out."
            ),
            Mistake("page table", "That is the block table itself."),
            Mistake(
                "page fault", "It has one: a further block is allocated when the last one is full."
            ),
            Mistake("offset", "It is the same in both: what remains of the division by the size."),
        ),
    ),
    Question(
        "f",
        "bytes of a block",
        "Bytes of keys and values in one block of one layer: Llama-3-70B, block size 32.",
        131_072,
        (
            Mistake(65_536, "That is the keys alone, or the values alone. A block holds both."),
            Mistake(4_096, "That is one token. A block has several slots."),
            Mistake(131_072 * 80, "That is all layers. Asked for is one of them."),
            Mistake(131_072 * 8, "That counts the query heads. Only the KV heads are stored."),
            Mistake(
                131_072 * 2,
                "That is twice as much. A number of 16 bits takes two bytes, not four.",
            ),
            Mistake(32_768, "That counts one byte a number, and keys or values only."),
        ),
    ),
    Question(
        "g",
        "blocks of one token",
        "[blocks taken with block size 1, with 16] by a request that grows to 480 tokens.",
        [480, 30],
        (
            Mistake([480, 480], "With blocks of 16 most tokens find room in the last block."),
            Mistake([1, 30], "A block of one token is full at once. Where does the next one go?"),
            Mistake([480, 31], "480 tokens fill their last block, and no further one is begun."),
            Mistake([480, 29], "The first block has to be taken as well."),
            Mistake([479, 29], "The first block has to be taken as well."),
            Mistake([480, 16], "That is the block size. How many such blocks hold 480 tokens?"),
            Mistake([30, 480], "The right two numbers, the other way round."),
        ),
        "Each block that is taken is an entry of the table, and attention looks up every entry. So "
        "empty slots are not all that counts.",
    ),
    Question(
        "h",
        "a short request",
        "Empty slots of a request of 20 tokens with blocks of 4, of 16 and of 128.",
        [0, 12, 108],
        (
            Mistake([4, 12, 108], "20 tokens fill their blocks of 4. Is a further one held?"),
            Mistake([4, 4, 20], "Those are the tokens in the last block."),
            Mistake([1.5, 7.5, 63.5], "That is the mean over all lengths. This is one of them."),
            Mistake([5, 2, 1], "That is how many blocks are held. How many slots are empty?"),
            Mistake([0, 37.5, 84.375], "That is per cent. Asked for are slots."),
            Mistake([0, 4, 108], "4 tokens are in the second block of 16. How many are not?"),
        ),
        "Whole blocks are held, and what lies behind the last token is empty.",
    ),
    Question(
        "i",
        "one number in the pool",
        "The place of number 10 of KV head 3 of the key at position 37: pool [200, 16, 8, 128] in "
        "one row, table [7, 91, 142].",
        2_332_042,
        (
            Mistake(38_282, "The table was not asked: this is where slot 37 has it."),
            Mistake(150_922, "A block has 16 slots: the offset is added to the first of them."),
            Mistake(2277, "That is the slot. Each slot has many numbers."),
            Mistake(2_331_648, "There the token's row begins. Which number of it is asked for?"),
            Mistake(
                2_333_322,
                "That is right of a pool in which the slots of one head lie together. Here the "
                "axis of the slots comes before that of the heads.",
            ),
            Mistake(4_664_084, "That is in bytes of a 16-bit pool. Asked for is the place."),
            Mistake(291_850, "Each slot has a row for every KV head, 8 in all."),
            Mistake(2_331_661, "Head 3 begins three whole rows later, and a row has 128 numbers."),
            Mistake(2_332_043, "Places are counted from 0."),
        ),
        "Go through the axes from left to right: multiply by the length of each, add the index.",
    ),
)
CHECK = answers_check(QUESTIONS)
