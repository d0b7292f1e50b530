// A store that is read key by key, and one that is made of keys and values from elsewhere.
#include "store/sqlite/upkeep/transfer.h"
#include "store/upkeep_fixture.h"

namespace spillway::store {
namespace {

class Transfer : public UpkeepTest {
 protected:
  static Entry entry(const std::string& key, const std::string& text) {
    Entry made;
    made.key = key;
    made.value = std::make_shared<const std::string>(text);
    return made;
  }
};

TEST_F(Transfer, AStoreThatIsMadeGoesOnFarBeyondWhatClientsHaveSeen) {
  auto maker = sqlite::StoreMaker::make(path_, {});
  ASSERT_TRUE(maker) << maker.error().text();
  ASSERT_TRUE((*maker)->add({entry("/registry/a/1", "one"), entry("/registry/a/2", "two")}));
  EXPECT_FALSE(std::filesystem::exists(path_)) << "it has its name before it is whole";
  const auto read = (*maker)->read("/registry/a/1", 10);
  ASSERT_TRUE(read && read->entries.size() == 1);
  EXPECT_EQ(*read->entries.front().value, "two");
  const auto continues_at = (*maker)->finish(Revision(77));
  ASSERT_TRUE(continues_at) << continues_at.error().text();
  EXPECT_EQ(continues_at->number(), 77 + sqlite::kRevisionLead);
  maker->reset();
  open();
  const auto written = client_->put("/registry/a/3", "three");
  ASSERT_TRUE(written);
  EXPECT_EQ(written->revision.number(), continues_at->number() + 1);
}

TEST_F(Transfer, AStoreThatIsNotFinishedLeavesNothing) {
  auto maker = sqlite::StoreMaker::make(path_, {});
  ASSERT_TRUE(maker);
  ASSERT_TRUE((*maker)->add({entry("/registry/a/1", "one")}));
  EXPECT_FALSE((*maker)->add({entry("/registry/a/1", "again")}));
  maker->reset();
  for (const auto& file : std::filesystem::directory_iterator(std::filesystem::path(path_).parent_path())) {
    EXPECT_EQ(file.path().filename().string().find("copying"), std::string::npos) << file.path();
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Transfer, AStoreThatIsThereIsKeptOnlyIfThatIsSaid) {
  open();
  put("/registry/a/1", "old");
  const Revision old = store_->revision();
  EXPECT_EQ(sqlite::StoreReader::open(path_).error().code, ErrorCode::kConflict) << "a server uses it";
  EXPECT_EQ(sqlite::StoreMaker::make(path_, path_ + ".kept").error().code, ErrorCode::kConflict);
  close();
  EXPECT_EQ(sqlite::StoreMaker::make(path_, {}).error().code, ErrorCode::kAlreadyExists);
  {
    auto maker = sqlite::StoreMaker::make(path_, path_ + ".kept");
    ASSERT_TRUE(maker);
    const auto continues_at = (*maker)->finish(Revision());
    ASSERT_TRUE(continues_at) << continues_at.error().text();
    EXPECT_GT(continues_at->number(), old.number() + sqlite::kRevisionLead - 1);
  }
  const auto kept = sqlite::StoreReader::open(path_ + ".kept");
  ASSERT_TRUE(kept) << kept.error().text();
  const auto read = (*kept)->read({}, 10);
  ASSERT_TRUE(read && read->entries.size() == 1);
  EXPECT_EQ(*read->entries.front().value, "old");
  EXPECT_EQ(sqlite::StoreReader::open(path_ + ".none").error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace spillway::store
