// Filling a new component, by message or through descriptors, and sealing it.
#pragma once

#include <unordered_map>

#include "core.h"

namespace pif::lfs {

class Writing {
 public:
  explicit Writing(Core& core) : core_(core) {}

  // For writing: makes the component if it is not there; descriptors that can write.
  [[nodiscard]] Result<net::Packet> attach(const Request& request);
  [[nodiscard]] Result<net::Packet> write(const Request& request);
  // Answers later: the component's bytes become durable first, away from the loop.
  void seal(const Request& request);

 private:
  // Of an open component whose rows did not come in order, in bytes.
  struct Skipper {
    std::uint64_t taken = 0;
    std::uint64_t skipped = 0;
  };
  // What rows leave out gets its sums when the component is finished, all at once and on the loop. Nobody may make that
  // more than what sending the rows has cost him: kTooLarge.
  [[nodiscard]] Status check_skipped(const Component& component, std::uint64_t begin, std::uint64_t bytes);
  [[nodiscard]] Result<ComponentPtr> open_component(const Request& request, const proto::ComponentShape& shape);
  [[nodiscard]] Status write_fixed(Component& component, const proto::Write& asked, std::span<const std::byte> body);
  [[nodiscard]] Status write_variable(Component& component, const proto::Write& asked, std::span<const std::byte> body);

  [[nodiscard]] Status finish_writer(Component& component);
  // Everything that is checked before the sync. Nothing: it is sealed already, with just these lengths.
  [[nodiscard]] Result<ComponentPtr> prepare_seal(const Request& request);
  [[nodiscard]] Status check_sizes(Component& component, const component::Tail& tail);
  [[nodiscard]] Status check_no_writers(Component& component);
  void sync_and_seal(ComponentPtr component, const proto::Seal& asked, ReplyToken token);
  void finish_seal(const ComponentPtr& component, const Extent& file, ReplyToken token);

  Core& core_;
  std::unordered_map<std::uint64_t, Skipper> skippers_;  // by file; gone with what is no longer open
};

}  // namespace pif::lfs
