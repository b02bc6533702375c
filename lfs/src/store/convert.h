// Between messages and the types of base and component. Pure.
#pragma once

#include <string>

#include "pif/base/format.h"
#include "pif/component/component.h"
#include "pif/parity/layout.h"
#include "pif/proto/messages.pb.h"

namespace pif::lfs {

// States of a component, as the catalogue and the messages have them.
enum State : std::uint32_t { kOpen = 1, kSealed = 2, kCommitted = 3 };

[[nodiscard]] Result<Format> format_of(const proto::Format& format);
[[nodiscard]] Result<parity::Layout> layout_of(const proto::FileLayout& layout);
// kInvalid if anything in it is not possible.
[[nodiscard]] Result<component::Shape> shape_of(const proto::ComponentShape& shape);

inline FileLength file_length_of(const proto::FileLength& file_length) {
  return {file_length.records(), file_length.bytes()};
}
inline void set_file_length(proto::FileLength* out, const FileLength& file_length) {
  out->set_records(file_length.records);
  out->set_bytes(file_length.bytes);
}
inline component::Tail tail_of(const proto::ComponentState& state) {
  return {state.rows(), state.bytes(), state.data_tail_sum(), state.index_tail_sum()};
}
void set_tail(proto::ComponentState& state, const component::Tail& tail);

// As files are named in messages to people.
std::string name_of(FileId file);
// Takes the id from the name of one of a component's files ("000000000000001f.dat"); false if it is none.
bool parse_file_name(const std::string& name, FileId& file);

// How many bytes of .dat the first `rows` rows of fixed records are at LFS `index`, when the whole file is `extent`
// long.
std::uint64_t fixed_component_bytes(const parity::Layout& layout, LfsIndex index, std::uint32_t record_length,
                                    std::uint64_t rows, const FileLength& file_length);

}  // namespace pif::lfs
