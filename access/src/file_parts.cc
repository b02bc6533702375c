#include "pif/access/file_parts.h"

#include "pif/base/assert.h"
#include "pif/wire/convert.h"
#include "pif/wire/views.h"

namespace pif::access {

bool FileParts::is_absent(LfsIndex lfs) const {
  PIF_ASSERT(lfs < nodes.size(), lfs, nodes.size());
  return is_protected() && wire::is_absent(nodes[lfs].view_state());
}

proto::ComponentShape FileParts::shape(LfsIndex index) const {
  PIF_ASSERT(index < layout.width() && index < nodes.size(), index, layout.width());
  proto::ComponentShape out;
  out.set_file(file.value);
  *out.mutable_format() = wire::proto_of(format);
  *out.mutable_layout() = file_layout;
  out.set_index(index);
  out.set_chunk_bytes(component::chunk_bytes_for(format));
  out.set_owner(owner);
  if (creating) out.set_incarnation(nodes[index].incarnation());
  return out;
}

}  // namespace pif::access
