#include "apiserver/write/writer.h"

#include "apiserver/write/object_write.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace spillway::apiserver {

void Writer::create(CreateJob job, WriteDone done) {
  const auto write = std::make_shared<ObjectWrite>(tools_, std::move(job), std::move(done));
  write->advance();
}

void Writer::update(UpdateJob job, WriteDone done) {
  const std::string store_key = job.resource->storage + object_key(job.ns, job.name);
  const auto write = std::make_shared<ObjectWrite>(tools_, std::move(job), store_key, std::move(done));
  if (tools_.turns.enter(store_key, write)) write->advance();
}

bool Writer::passes_renewal(const api::UserInfo& user, const Resource& resource, const StoredObject& object) const {
  if (tools_.webhooks != nullptr && tools_.webhooks->applies_to(resource, nullptr, webhooks::Operation::kUpdate)) {
    return false;
  }
  return std::ranges::all_of(tools_.checks, [&](const AdmissionCheck* check) {
    return check->passes_renewal(user, resource, object.ns, object.name);
  });
}

bool Writer::is_updating(const Resource& resource, const StoredObject& object) const {
  return tools_.turns.has_entries(resource.storage + object.key);
}

void Writer::renew(Renewal renewal, Committer::Done done) {
  std::string store_key = renewal.resource.storage + renewal.current->key;
  tools_.turns.begin_renewal(store_key);
  tools_.committer.renew(std::move(renewal), [this, store_key = std::move(store_key),
                                              done = std::move(done)](api::StatusResult<Commit> result) mutable {
    tools_.turns.end_renewal(store_key);
    done(std::move(result));
    tools_.turns.begin_next();
  });
}

}  // namespace spillway::apiserver
