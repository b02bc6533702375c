// Components that releases before parity made of files with bevies (docs/FORMAT.md "Older files"). Between their stored
// rows are empty ones (parity/older_rows.h); everything outside this LFS's own files and catalogue knows dense rows
// only. So they are read from a copy with dense rows, and nobody changes them.
#pragma once

#include <memory>
#include <string>

#include "pif/component/component.h"
#include "pif/wire/convert.h"

namespace pif::lfs {

using wire::is_older;
// kUnsupported: what every change of such a component is refused with.
Error unprotected(FileId file);

// The state of a component as others see it. stored: the catalogue's. An older one has the rows and bytes of its dense
// copy; sums of partial last chunks are 0, for only the copy has them.
proto::ComponentState shown_state(const proto::ComponentState& stored);

// It lasts as long as somebody has its files open: they have no names, and cannot be written.
struct DenseCopy {
  std::shared_ptr<component::Files> files;
  component::Tail tail;
};

// The bytes that the copy takes on the disk.
std::uint64_t dense_copy_bytes(const proto::ComponentState& stored);
// Reads all of an older component, every byte checked. number: another one for each copy of this process. kCorrupt: of
// the component, names file and rows; kIo, kNoSpace. Any thread.
[[nodiscard]] Result<DenseCopy> make_dense_copy(component::Storage& storage, const std::string& root,
                                                const proto::ComponentState& stored, std::uint64_t number);

}  // namespace pif::lfs
