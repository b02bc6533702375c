#include "pif/pattern/walker.h"

#include "wrapping.h"

namespace pif::patterns {

Result<Walker> Walker::make(const Compiled& pattern, std::int64_t displacement, std::uint64_t skip,
                            std::uint64_t bytes) {
  PIF_TRY(pattern.bounds(displacement, skip, bytes));
  Walker walker;
  walker.left_ = bytes;
  walker.pattern_ = &pattern;
  if (bytes > 0) walker.seek(pattern.root(), wrapping(displacement), skip);
  return walker;
}

// Goes down to the leaf that has byte `at`.
void Walker::seek(const Node* root, std::uint64_t displacement, std::uint64_t at) {
  const Node* first = root;
  const Node* end = first + 1;
  std::uint64_t outer = displacement;
  for (depth_ = 0;; ++depth_) {
    const Node* node =
        std::upper_bound(first, end, at, [](std::uint64_t byte, const Node& sibling) { return byte < sibling.begin; }) -
        1;
    at -= node->begin;
    const std::uint64_t index = at / node->bytes;
    PIF_ASSERT(index < node->count, index, node->count);
    at -= index * node->bytes;
    enter(node, end, outer);
    Frame& frame = frames_[depth_];
    frame.place += index * wrapping(node->stride);
    frame.count -= index;
    if (node->children == 0) break;
    first = pattern_->nodes() + node->child;
    end = first + node->children;
    outer = frame.place;
  }
  if (frames_[depth_].node->list != Compiled::kNoList) return enter_list(at);
  descend();
  cut_ = at;
}

// The first repetition of a node, on level depth_.
void Walker::enter(const Node* node, const Node* end, std::uint64_t outer) {
  PIF_ASSERT(depth_ < frames_.size(), depth_);
  frames_[depth_] = {node, end, outer, outer + wrapping(node->offset), node->count};
}

// From the repetition on level depth_ down to its first leaf.
void Walker::descend() {
  while (frames_[depth_].node->children > 0) {
    const Frame& frame = frames_[depth_];
    const Node* child = pattern_->nodes() + frame.node->child;
    ++depth_;
    enter(child, child + frame.node->children, frame.place);
  }
  const Frame& leaf = frames_[depth_];
  if (leaf.node->list != Compiled::kNoList) return enter_list(0);
  place_ = leaf.place;
  stride_ = wrapping(leaf.node->stride);
  size_ = leaf.node->bytes;
  count_ = leaf.count;
  cut_ = 0;
}

// Into the piece of the leaf's list that has byte `at`.
void Walker::enter_list(std::uint64_t at) {
  const Compiled::List& list = pattern_->list(*frames_[depth_].node);
  const auto begin = std::upper_bound(list.begins.begin(), list.begins.end(), at) - 1;
  item_ = list.first + (begin - list.begins.begin()) * static_cast<std::ptrdiff_t>(Compiled::List::kBeginEvery);
  item_end_ = list.end;
  for (at -= *begin; at >= item_->bytes; ++item_) {
    PIF_ASSERT(item_ + 1 < item_end_, at);
    at -= item_->bytes;
  }
  load_item();
  cut_ = at;
}

void Walker::load_item() {
  place_ = frames_[depth_].place + wrapping(item_->offset);
  stride_ = 0;
  size_ = item_->bytes;
  count_ = 1;
  cut_ = 0;
}

// To the next leaf: there is one, because bytes are left. The levels above the leaf count their own repetitions, and so
// does a list.
void Walker::advance() {
  while (item_ != item_end_) {
    if (++item_ == item_end_) break;
    if (item_->bytes > 0) return load_item();
  }
  if (Frame& leaf = frames_[depth_]; leaf.node->list != Compiled::kNoList && --leaf.count > 0) {
    leaf.place += wrapping(leaf.node->stride);
    return enter_list(0);
  }
  while (true) {
    const Frame frame = frames_[depth_];
    if (frame.node + 1 < frame.end) {
      enter(frame.node + 1, frame.end, frame.outer);
      return descend();
    }
    PIF_ASSERT(depth_ > 0);
    Frame& above = frames_[--depth_];
    if (--above.count > 0) {
      above.place += wrapping(above.node->stride);
      return descend();
    }
  }
}

std::optional<Run> Walker::next_run(std::uint64_t bytes_max) {
  const std::uint64_t bytes = std::min(left_, bytes_max);
  if (cut_ > 0 || bytes < size_) {
    const auto piece = next(bytes_max);
    return piece ? std::optional(Run{piece->offset, piece->size, 0, 1}) : std::nullopt;
  }
  if (left_ == 0) return std::nullopt;
  const std::uint64_t count = std::min(count_, bytes / size_);
  const Run run{static_cast<std::int64_t>(place_), size_, count > 1 ? static_cast<std::int64_t>(stride_) : 0, count};
  left_ -= count * size_;
  pass_pieces(count);
  return run;
}

Walker::Repetition Walker::repetition(std::uint64_t size) const {
  PIF_ASSERT(size > 0 && size <= piece_bytes(), size, piece_bytes());
  if (size < size_ - cut_) return {static_cast<std::int64_t>(size), (size_ - cut_) / size};
  if (cut_ > 0) return {};
  return {static_cast<std::int64_t>(stride_), count_};
}

void Walker::pass(std::uint64_t size, std::uint64_t count) {
  PIF_ASSERT(count <= left_ / size, count, left_, size);
  if (size < size_ - cut_ || cut_ > 0) return pass_within_piece(size * count);
  PIF_ASSERT(size == size_ && count <= count_, size, size_, count, count_);
  left_ -= size * count;
  pass_pieces(count);
}

}  // namespace pif::patterns
