#include "scrub/scrub_files.h"

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/component/names.h"

namespace pif::lfs {
namespace {

constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kLookAgain = std::chrono::milliseconds(50);

void close_files(const ScrubJob& job) {
  LfsContext& context = job.context();
  const auto may_close = [&] { return Components::is_spare(*job.component); };
  const Time patience = context.now() + kPatience;
  while (!job.is_gone() && !may_close() && context.now() < patience) job.pass.wait_until(context.now() + kLookAgain);
  if (!job.is_gone() && may_close()) context.components.close_files(*job.component);
}

// Away from the loop. Paths.
std::vector<std::string> missing_files(const ScrubJob& job) {
  std::vector<std::string> missing;
  for (const std::string& path : component::needed_names(job.stem, job.component->shape.format)) {
    const auto file = job.storage.open(path, component::OpenMode::kRead);
    if (!file && file.error().code == Code::kNotFound) missing.push_back(path);
  }
  return missing;
}

// On the loop's thread, where the component is not removed at the same time: nobody would know of files made anew then.
Status make_files(const ScrubJob& job) {
  if (job.pass.only_look) return fail(Code::kCancelled, "as was asked for");
  PIF_ASSERT(!job.component->is_removed(), job.component->file.value);
  PIF_TRY(component::open_files(job.storage, job.stem, job.component->shape.format, component::OpenMode::kCreate));
  return job.pass.keeping.works.run([&job] { return job.storage.sync_folder(job.folder()); });
}

}  // namespace

void scrub_files(const ScrubJob& job) {
  close_files(job);
  if (job.is_gone()) return;
  const auto missing = job.pass.keeping.works.run([&job] { return missing_files(job); });
  if (missing.empty()) return;
  job.pass.await_leave();
  if (job.is_gone()) return;
  const Status made = make_files(job);
  for (const std::string& path : missing)
    job.report(fmt::format("file {}: {} is missing; {}", name_of(job.component->file), path,
                           made ? "made anew" : "not repaired: " + made.error().text),
               made.has_value());
}

}  // namespace pif::lfs
