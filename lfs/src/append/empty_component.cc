#include "append/empty_component.h"

#include "pif/base/assert.h"

namespace pif::lfs {

Result<ComponentPtr> make_empty(LfsContext& context, const proto::ComponentShape& shape, std::uint64_t epoch) {
  const FileId file(shape.file());
  PIF_TRY(context.check_shape(shape, file));
  PIF_TRY(context.check_space(0));
  PIF_TRY_VALUE(auto made, context.components.create(shape, epoch, context.now()));
  // Durable before the catalogue names it; so little that it is done here.
  auto synced = component::sync(*made->files).and_then([&] {
    return context.world.storage.sync_folder(context.components.folder(file));
  });
  if (!synced) {
    context.components.set_failed(*made, synced.error());
    return fail(std::move(synced.error()));
  }
  made->state.set_state(kCommitted);
  made->make_by_append();
  PIF_ASSERT(made->is_whole() && made->state.rows() == 0, file.value, made->state.rows());
  return made;
}

}  // namespace pif::lfs
