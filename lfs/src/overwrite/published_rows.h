// How many rows of a component are published: behind these are rows of appends that are under way, or that came to
// nothing and are dropped by the next append. Only LFS 0 knows the newest length. So an overwrite of a row behind the
// length that is known here waits for its word. A client names such a row where the row was appended just now, or where
// LFS 0 was put back to a state of before the append.
#pragma once

#include <functional>

#include "context/lfs_context.h"
#include "parity/peers.h"

namespace pif::lfs {

class PublishedRows {
 public:
  using Told = std::function<void(const Result<std::uint64_t>& rows)>;

  PublishedRows(LfsContext& context, Peers& peers) : context_(context), peers_(peers) {}

  // As many are published at least. At LFS 0 no more are.
  static std::uint64_t known(const Component& component);
  static bool is_known_here(const Component& component) { return component.state.shape().index() == 0; }
  // Of LFS 0, which is another one. told: kRetry while it does not answer; perhaps before this returns.
  void ask(const Component& component, Told told);

 private:
  LfsContext& context_;
  Peers& peers_;
};

}  // namespace pif::lfs
