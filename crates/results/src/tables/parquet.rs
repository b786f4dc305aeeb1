//! Parquet: every column optional, one row group, pages deflated.
//!
//! Types: text is a UTF-8 string, whole numbers are INT64, numbers DOUBLE, times of day TIMESTAMP
//! (microseconds, UTC), yes or no BOOLEAN. Deflate (`GZIP`) is read by everything that reads
//! Parquet and needs no further library here.

use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{Type, TypePtr};

use super::column::{Column, ColumnValues, DataTable};

/// The table as a file of Parquet.
pub(super) fn render(table: &DataTable) -> Result<Vec<u8>> {
    let fields: Vec<TypePtr> = table.columns.iter().map(field).collect::<Result<_>>()?;
    let schema = Type::group_type_builder("schema")
        .with_fields(fields)
        .build()?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("stackrace ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::GZIP(GzipLevel::default()))
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let mut columns = table.columns.iter();
    while let (Some(column), Some(mut to)) = (columns.next(), group.next_column()?) {
        match &column.values {
            ColumnValues::Text(values) => {
                put::<ByteArrayType, _>(&mut to, values, |text| ByteArray::from(text.as_str()))?
            }
            ColumnValues::Whole(values) => put::<Int64Type, _>(&mut to, values, |value| *value)?,
            ColumnValues::Real(values) => put::<DoubleType, _>(&mut to, values, |value| *value)?,
            ColumnValues::Time(values) => {
                put::<Int64Type, _>(&mut to, values, |time| time.as_microsecond())?;
            }
            ColumnValues::Flag(values) => put::<BoolType, _>(&mut to, values, |value| *value)?,
        }
        to.close()?;
    }
    group.close()?;
    writer.into_inner()
}

fn field(column: &Column) -> Result<TypePtr> {
    let (physical, logical) = match column.values {
        ColumnValues::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnValues::Whole(_) => (Physical::INT64, None),
        ColumnValues::Real(_) => (Physical::DOUBLE, None),
        ColumnValues::Time(_) => (
            Physical::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MICROS)),
        ),
        ColumnValues::Flag(_) => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

/// Writes a column: which rows have a value, and the values of those.
fn put<T: DataType, V>(
    to: &mut SerializedColumnWriter<'_>,
    values: &[Option<V>],
    physical: impl Fn(&V) -> T::T,
) -> Result<()> {
    // Parquet stores a flag for each row, and after them the values that exist, without gaps.
    let there: Vec<i16> = values.iter().map(|v| i16::from(v.is_some())).collect();
    let values: Vec<T::T> = values.iter().flatten().map(physical).collect();
    to.typed::<T>().write_batch(&values, Some(&there), None)?;
    Ok(())
}
