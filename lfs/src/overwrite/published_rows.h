// How many rows of a component are published: behind these are rows of appends that are under way, or that came to
// nothing and are dropped by the next append. Only LFS 0 knows the newest length. So an overwrite of a row behind the
// length that is known here waits for its word. A client names such a row where the row was appended just now, or where
// LFS 0 was put back to a state of before the append.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "context/lfs_context.h"
#include "parity/peers.h"

namespace pif::lfs {

class PublishedRows {
 public:
  PublishedRows(LfsContext& context, Peers& peers) : context_(context), peers_(peers), ended_(context.fibers) {}

  // As many are published at least. At LFS 0 no more are.
  static std::uint64_t known(const Component& component);
  static bool is_known_here(const Component& component) { return component.state.shape().index() == 0; }
  // LFS 0, which is another one. Those who ask while it is being asked share the next question: what it answers now is
  // of before. kRetry: it does not answer. Called by a fiber.
  [[nodiscard]] Result<std::uint64_t> ask(const ComponentPtr& component);

 private:
  struct Question {
    bool is_sent = false;
    std::optional<Result<std::uint64_t>> rows;
  };
  [[nodiscard]] Result<std::uint64_t> send(const Component& component);

  LfsContext& context_;
  Peers& peers_;
  std::map<ComponentPtr, std::shared_ptr<Question>> newest_;  // of each component that somebody asks about
  daemon::Event ended_;                                       // a question
};

}  // namespace pif::lfs
