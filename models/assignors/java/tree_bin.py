"""A crowded bucket of a java.util.HashMap: a list whose order a red-black tree determines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

K = TypeVar("K")

_LEFT, _RIGHT = 0, 1


class _Node(Generic[K]):
    """A node of the tree; ``children`` are its left and its right child."""

    __slots__ = ("children", "entry", "parent", "red")

    def __init__(self, entry: tuple[int, K], parent: _Node[K] | None) -> None:
        # Keys are compared by their own order, which the type of a key doesn't show here.
        self.entry: tuple[Any, Any] = entry
        self.parent = parent
        self.children: list[_Node[K] | None] = [None, None]
        self.red = True


class JavaTreeBin(Generic[K]):
    """The entries of one bucket; ``in_order`` has them in the order of Java's iterator.

    A new entry is inserted right after its parent in the tree, and after each change the root of
    the tree moves to the front: so the order depends on the tree. Entries are (hash, key) with a
    signed hash; no two are equal.

    Source: java.util.HashMap.TreeNode of Java 9 to 25 (treeify, putTreeVal, removeTreeNode).
    """

    __slots__ = ("_root", "in_order")

    def __init__(self, entries: Iterable[tuple[int, K]]) -> None:
        self.in_order = list(entries)
        self._root: _Node[K] | None = None
        for entry in self.in_order:
            self._hang(entry)
        self._root_to_front()

    def add(self, entry: tuple[int, K]) -> None:
        """Add an entry that the bucket doesn't have."""
        parent = self._hang(entry)
        after = self.in_order.index(parent.entry) + 1 if parent else 0
        self.in_order.insert(after, entry)
        self._root_to_front()

    def remove(self, entry: tuple[int, K]) -> bool:
        """Remove an entry; return False if Java turns the rest into a list."""
        self.in_order.remove(entry)
        if self._is_small():
            return False
        node = self._find(entry)
        if None not in node.children:
            node = _exchange_with_successor(node)
        child = node.children[_LEFT] or node.children[_RIGHT]
        if child is not None:
            # Balance allows for a single child below a black node only, and it has to be red.
            child.red = False
        elif not node.red:
            self._settle_shortened(node)
        self._replace(node, child)
        self._root_to_front()
        return True

    def _is_small(self) -> bool:
        """Return whether Java turns the tree into a list at a removal, by a few of its nodes."""
        root = self._root
        if root is None or root.children[_RIGHT] is None:
            return True
        left = root.children[_LEFT]
        return left is None or left.children[_LEFT] is None

    def _find(self, entry: tuple[int, K]) -> _Node[K]:
        node = self._root
        while node is not None and node.entry != entry:
            node = node.children[entry > node.entry]
        assert node is not None, "the tree has what the list has"
        return node

    def _root_to_front(self) -> None:
        if self._root is not None and self.in_order[0] != self._root.entry:
            self.in_order.remove(self._root.entry)
            self.in_order.insert(0, self._root.entry)

    def _hang(self, entry: tuple[int, K]) -> _Node[K] | None:
        """Insert an entry below the leaf where it belongs, balance, and return its first parent."""
        parent, node = None, self._root
        while node is not None:
            parent, node = node, node.children[entry > node.entry]
        new = _Node(entry, parent)
        if parent is None:
            self._root = new
        else:
            parent.children[entry > parent.entry] = new
        self._settle_red(new)
        return parent

    def _settle_red(self, node: _Node[K]) -> None:
        """Rebalance after a red node was added: no red node may have a red child."""
        while (parent := node.parent) is not None and parent.red:
            above = parent.parent
            assert above is not None, "a root is black"
            side = _side(parent)
            uncle = above.children[1 - side]
            if uncle is not None and uncle.red:
                parent.red = uncle.red = False
                above.red = True
                node = above
                continue
            if _side(node) != side:
                self._rotate(parent, side)
                parent = node
            parent.red = False
            above.red = True
            self._rotate(above, 1 - side)
            break
        assert self._root is not None
        self._root.red = False

    def _settle_shortened(self, node: _Node[K]) -> None:
        """Rebalance before a black leaf goes, whose side would have one black node too few."""
        while (parent := node.parent) is not None:
            side = _side(node)
            sibling = _below(parent, 1 - side)
            if sibling.red:
                sibling.red = False
                parent.red = True
                self._rotate(parent, side)
                sibling = _below(parent, 1 - side)
            near, far = sibling.children[side], sibling.children[1 - side]
            if not _is_red(near) and not _is_red(far):
                sibling.red = True
                node = parent
                if node.red:
                    break
                continue
            if not _is_red(far):
                assert near is not None
                near.red = False
                sibling.red = True
                self._rotate(sibling, 1 - side)
                far, sibling = sibling, near
            assert far is not None
            sibling.red = parent.red
            parent.red = far.red = False
            self._rotate(parent, side)
            return
        node.red = False

    def _rotate(self, node: _Node[K], side: int) -> None:
        """Rotate a node down to one side; its child on the other side takes its place."""
        child = _below(node, 1 - side)
        inner = child.children[side]
        self._replace(node, child)
        node.children[1 - side] = inner
        if inner is not None:
            inner.parent = node
        child.children[side] = node
        node.parent = child

    def _replace(self, node: _Node[K], child: _Node[K] | None) -> None:
        """Replace a node by its child."""
        if node.parent is None:
            self._root = child
        else:
            node.parent.children[_side(node)] = child
        if child is not None:
            child.parent = node.parent


def _exchange_with_successor(node: _Node[K]) -> _Node[K]:
    """Move the next entry to a node with two children; return the node to remove."""
    next_one = _below(node, _RIGHT)
    while (left := next_one.children[_LEFT]) is not None:
        next_one = left
    node.entry, next_one.entry = next_one.entry, node.entry
    return next_one


def _below(node: _Node[K], side: int) -> _Node[K]:
    child = node.children[side]
    assert child is not None, "balance requires a node on this side"
    return child


def _side(node: _Node[K]) -> int:
    assert node.parent is not None
    return _LEFT if node.parent.children[_LEFT] is node else _RIGHT


def _is_red(node: _Node[K] | None) -> bool:
    return node is not None and node.red
