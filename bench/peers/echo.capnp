@0xd2f6c1a4b7e39058;

interface Echo {
  echo @0 (data :Data) -> (data :Data);
}
