// Filling a new component, by message or through descriptors, and sealing it.
#pragma once

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
};

}  // namespace pif::lfs
