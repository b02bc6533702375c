// Between messages and what a component is on disk; wire/ has the rest. Pure.
#pragma once

#include <string>

#include "pif/base/format.h"
#include "pif/component/component.h"
#include "pif/parity/layout.h"
#include "pif/wire/convert.h"

namespace pif::lfs {

// States of a component, as the catalogue and the messages have them.
enum State : std::uint32_t { kOpen = 1, kSealed = 2, kCommitted = 3 };

using wire::file_length_of;
using wire::format_of;
using wire::layout_of;

// kInvalid if anything in it is not possible.
[[nodiscard]] Result<component::Shape> shape_of(const proto::ComponentShape& shape);

// Whether both have the same format, layout and index.
bool is_same_shape(const proto::ComponentShape& a, const proto::ComponentShape& b);
// The LFSs of the file keep parity.
inline bool keeps_parity(const proto::ComponentShape& shape) {
  return shape.layout().form() == 1 && shape.layout().bevies_size() > 0;
}

inline component::Tail tail_of(const proto::ComponentState& state) {
  return {state.rows(), state.bytes(), state.data_tail_sum(), state.index_tail_sum()};
}
void set_tail(proto::ComponentState& state, const component::Tail& tail);

// As files are named in messages to people.
std::string name_of(FileId file);
// Takes the id from the name of one of a component's files ("000000000000001f.dat"); false if it is none.
bool parse_file_name(const std::string& name, FileId& file);

// How many bytes of .dat the first `rows` rows of fixed records are at LFS `index`, when the whole file is
// `file_length` long.
std::uint64_t fixed_component_bytes(const parity::Layout& layout, LfsIndex index, std::uint32_t record_length,
                                    std::uint64_t rows, const FileLength& file_length);

}  // namespace pif::lfs
