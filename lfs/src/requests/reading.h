// Reading: rows, bytes and offsets by message, descriptors of whole components, published lengths.
#pragma once

#include "context/lfs_context.h"

namespace pif::lfs {

class Reading {
 public:
  explicit Reading(LfsContext& context);

  [[nodiscard]] Result<net::Packet> read(const Request& request, const proto::Read& asked);
  [[nodiscard]] Result<net::Packet> read_bytes(const Request& request, const proto::ReadBytes& asked);
  [[nodiscard]] Result<net::Packet> offsets(const Request& request, const proto::Offsets& asked);
  [[nodiscard]] Result<net::Packet> length(const Request& request, const proto::Length& asked);
  // For reading: descriptors of a complete component. A worker gets them when nothing changes the component any more,
  // and holds it against changes until it ends.
  void attach(const Request& request);
  using IsChanging = std::function<bool(const Component&)>;
  // Answers workers whose components have come to rest. Once per turn.
  void advance(const IsChanging& is_changing);

 private:
  struct Span {  // of rows asked for
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint64_t stride = 1;
  };
  [[nodiscard]] Result<net::Buffer> read_fixed(const Component& component, Span& span, std::size_t bytes_max);
  [[nodiscard]] Result<net::Buffer> read_variable(const Component& component, Span& span, std::size_t bytes_max);
  [[nodiscard]] Result<net::Buffer> read_variable_strided(const Component& component, Span& span,
                                                          std::size_t bytes_max);
  [[nodiscard]] Result<ComponentPtr> readable(const Request& request, FileId file);

  [[nodiscard]] Result<net::Packet> descriptors(Component& component);

  struct Attaching {
    ReplyToken token = 0;
    ComponentPtr component;
  };
  LfsContext& context_;
  std::vector<Attaching> attaching_;  // workers
};

}  // namespace pif::lfs
